// What this machine is: processor, memory that is left to this process (control group limits included),
// threads in use.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "cpu-features.h"
#include "export.h"

namespace granary {

namespace {

// The value in KiB of a line of /proc/meminfo, in bytes; 0 when it is not there.
int64_t memoryInfoBytes(const char* key) {
  FILE* file = fopen("/proc/meminfo", "r");
  if (file == nullptr) return 0;
  char line[256];
  int64_t kibibytes = 0;
  while (fgets(line, sizeof line, file) != nullptr) {
    if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), ": %" SCNd64, &kibibytes) == 1)
      break;
  }
  fclose(file);
  return kibibytes * 1024;
}

// A number alone in a file; -1 for a missing file or the word "max".
int64_t numberIn(const char* path) {
  FILE* file = fopen(path, "r");
  if (file == nullptr) return -1;
  int64_t value = -1;
  if (fscanf(file, "%" SCNd64, &value) != 1) value = -1;
  fclose(file);
  return value;
}

void readMemory(GranaryDeviceInfo* out) {
  out->totalBytes = memoryInfoBytes("MemTotal");
  out->freeBytes = memoryInfoBytes("MemAvailable");
  const int64_t limit = numberIn("/sys/fs/cgroup/memory.max");
  if (limit < 0) return;
  const int64_t used = numberIn("/sys/fs/cgroup/memory.current");
  const int64_t left = used < 0 || used > limit ? 0 : limit - used;
  if (limit < out->totalBytes) out->totalBytes = limit;
  if (left < out->freeBytes) out->freeBytes = left;
}

void readName(char* name, size_t bytes) {
  snprintf(name, bytes, "x86-64 processor");
  FILE* file = fopen("/proc/cpuinfo", "r");
  if (file == nullptr) return;
  char line[256];
  while (fgets(line, sizeof line, file) != nullptr) {
    const char* colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || colon == nullptr) continue;
    snprintf(name, bytes, "%s", colon + 2);
    name[strcspn(name, "\n")] = '\0';
    break;
  }
  fclose(file);
}

}  // namespace

}  // namespace granary

using namespace granary;

GRANARY_EXPORT int32_t granary_device_info(GranaryDeviceInfo* out) {
  const Check check("device_info", out);
  if (check.failed()) return check.status();
  memset(out, 0, sizeof *out);
  readMemory(out);
  out->numMultiprocessors = numThreads();
  readName(out->name, sizeof out->name);
  snprintf(out->features, sizeof out->features, "%s", featuresOf(activeIsa()));
  return GRANARY_OK;
}
