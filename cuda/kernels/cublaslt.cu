// Products through cuBLASLt: loading it, and one cached plan (descriptors and algorithm) a shape and bucket
// of rows.
//
// Our matrices are row-major and its are column-major, so it is asked for out^T = weight * x^T: A is the
// weight, transposed, B is x, C is the residual, D is out.
#include "cublaslt.h"

#include <dlfcn.h>

#include <cstring>
#include <unordered_map>

#include "cublaslt-api.h"
#include "runtime.h"

namespace granary {

namespace {

// At the bound every plan is dropped and made anew.
constexpr size_t kMaxPlans = 4096;

LtApi api;
void* library = nullptr;
LtHandle handle = nullptr;

// ---- loading ------------------------------------------------------------------------------------------

template <typename Function>
bool resolve(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool resolveAll() {
  return resolve(api.create, "cublasLtCreate") && resolve(api.destroy, "cublasLtDestroy") &&
         resolve(api.getVersion, "cublasLtGetVersion") &&
         resolve(api.matmulDescCreate, "cublasLtMatmulDescCreate") &&
         resolve(api.matmulDescDestroy, "cublasLtMatmulDescDestroy") &&
         resolve(api.matmulDescSetAttribute, "cublasLtMatmulDescSetAttribute") &&
         resolve(api.matrixLayoutCreate, "cublasLtMatrixLayoutCreate") &&
         resolve(api.matrixLayoutDestroy, "cublasLtMatrixLayoutDestroy") &&
         resolve(api.matrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute") &&
         resolve(api.preferenceCreate, "cublasLtMatmulPreferenceCreate") &&
         resolve(api.preferenceDestroy, "cublasLtMatmulPreferenceDestroy") &&
         resolve(api.preferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute") &&
         resolve(api.getHeuristic, "cublasLtMatmulAlgoGetHeuristic") && resolve(api.matmul, "cublasLtMatmul");
}

// ---- plans --------------------------------------------------------------------------------------------

// What an algorithm depends on. Compared as bytes, so it has no padding.
struct PlanKey {
  int64_t xStride, residualStride, outStride;
  int32_t maxRows, inColumns, outColumns, dtype, outDtype;
  int32_t hasBias;
  int32_t alignments;  // a byte each for A, B, C, D: log2 of the address' alignment, 8 at most
  int32_t hasResidual;
};
static_assert(sizeof(PlanKey) == 56, "PlanKey is hashed and compared as bytes");

struct KeyHash {
  size_t operator()(const PlanKey& key) const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&key);
    uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
    for (size_t i = 0; i < sizeof(key); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
  }
};
struct KeyEqual {
  bool operator()(const PlanKey& a, const PlanKey& b) const { return std::memcmp(&a, &b, sizeof(a)) == 0; }
};

// A prompt can bring any number of rows: its products take the algorithm of the next of a few sizes, at most
// an eighth apart, so that a new length costs no search.
int32_t rowBucket(int32_t rows) {
  int32_t step = 8;
  while (step * 16 < rows) step *= 2;
  return static_cast<int32_t>(alignUp(rows, step));
}

struct Plan {
  LtMatmulDesc desc = nullptr;
  LtMatrixLayout a = nullptr, b = nullptr, c = nullptr, d = nullptr;
  LtAlgo algo{};
  int32_t rows = 0;  // that b, c and d describe
  bool isSupported = false;
  bool hasRun = false;    // its kernel's module is loaded
  bool isPicky = false;   // the algorithm refused a number of rows of its bucket: each gets a plan of its own
};

std::unordered_map<PlanKey, Plan, KeyHash, KeyEqual> plans;

int32_t dataType(int32_t dtype) {
  return dtype == GRANARY_F32 ? kLtDataF32 : kLtDataBf16;
}

int32_t alignmentLog2(granary_address address) {
  return address % 256 == 0 ? 8 : __builtin_ctzll(address);
}

PlanKey keyOf(const GranaryLinear& args, int32_t maxRows) {
  PlanKey key{};
  key.xStride = args.xStride;
  key.residualStride = args.residual != 0 ? args.residualStride : args.outStride;
  key.outStride = args.outStride;
  key.maxRows = maxRows;
  key.inColumns = args.inColumns;
  key.outColumns = args.outColumns;
  key.dtype = args.dtype;
  key.outDtype = args.outDtype;
  key.hasBias = args.bias != 0;
  key.hasResidual = args.residual != 0;
  const granary_address c = args.residual != 0 ? args.residual : args.out;
  key.alignments = alignmentLog2(args.weight) | alignmentLog2(args.x) << 8 | alignmentLog2(c) << 16 |
                   alignmentLog2(args.out) << 24;
  return key;
}

void destroyPlan(const Plan& plan) {
  if (plan.desc != nullptr) api.matmulDescDestroy(plan.desc);
  for (LtMatrixLayout layout : {plan.a, plan.b, plan.c, plan.d}) {
    if (layout != nullptr) api.matrixLayoutDestroy(layout);
  }
}

void dropPlans() {
  for (const auto& entry : plans) destroyPlan(entry.second);
  plans.clear();
}

bool describe(const PlanKey& key, Plan& plan) {
  const int32_t in = dataType(key.dtype), out = dataType(key.outDtype);
  const int32_t transposed = kLtTransposed, epilogue = kLtEpilogueBias, biasType = kLtDataF32;
  bool good = api.matmulDescCreate(&plan.desc, kLtComputeF32, kLtDataF32) == 0 &&
              api.matmulDescSetAttribute(plan.desc, kLtDescTransposeA, &transposed, sizeof(int32_t)) == 0;
  if (good && key.hasBias) {
    good = api.matmulDescSetAttribute(plan.desc, kLtDescEpilogue, &epilogue, sizeof(int32_t)) == 0 &&
           api.matmulDescSetAttribute(plan.desc, kLtDescBiasDataType, &biasType, sizeof(int32_t)) == 0;
  }
  return good && api.matrixLayoutCreate(&plan.a, in, key.inColumns, key.outColumns, key.inColumns) == 0 &&
         api.matrixLayoutCreate(&plan.b, in, key.inColumns, key.maxRows, key.xStride) == 0 &&
         api.matrixLayoutCreate(&plan.c, out, key.outColumns, key.maxRows, key.residualStride) == 0 &&
         api.matrixLayoutCreate(&plan.d, out, key.outColumns, key.maxRows, key.outStride) == 0;
}

// Makes the layouts those of `rows` rows; the algorithm stays.
bool resize(Plan& plan, int32_t rows) {
  if (plan.rows == rows) return true;
  const uint64_t columns = rows;  // a row of ours is a column of theirs
  for (LtMatrixLayout layout : {plan.b, plan.c, plan.d}) {
    if (api.matrixLayoutSetAttribute(layout, kLtLayoutColumns, &columns, sizeof(columns)) != 0) return false;
  }
  plan.rows = rows;
  return true;
}

bool choose(const PlanKey& key, Plan& plan) {
  LtPreference preference = nullptr;
  if (api.preferenceCreate(&preference) != 0) return false;
  const size_t workspaceBytes = runtime.workspaceBytes;
  api.preferenceSetAttribute(preference, kLtPreferenceWorkspaceBytes, &workspaceBytes,
                             sizeof(workspaceBytes));
  // Parts of a split sum meet in float32, not in the output's type.
  const uint32_t reduction = kLtReductionComputeType;
  api.preferenceSetAttribute(preference, kLtPreferenceReductionSchemes, &reduction, sizeof(reduction));
  for (int32_t operand = 0; operand < 4; ++operand) {
    const uint32_t alignment = 1u << (key.alignments >> (8 * operand) & 0xff);
    api.preferenceSetAttribute(preference, kLtPreferenceAlignmentA + operand, &alignment, sizeof(alignment));
  }
  LtHeuristicResult result{};
  int32_t found = 0;
  const int32_t status =
      api.getHeuristic(handle, plan.desc, plan.a, plan.b, plan.c, plan.d, preference, 1, &result, &found);
  api.preferenceDestroy(preference);
  plan.algo = result.algo;
  return status == 0 && found == 1 && result.state == 0;
}

// The plan of a key, made where it is missing; null where a capture forbids that.
Plan* planOf(const PlanKey& key) {
  auto known = plans.find(key);
  if (known == plans.end()) {
    if (runtime.isCapturing) return nullptr;
    if (plans.size() >= kMaxPlans) dropPlans();
    Plan fresh;
    fresh.isSupported = describe(key, fresh) && choose(key, fresh);
    known = plans.emplace(key, fresh).first;
  }
  return &known->second;
}

int32_t planFor(const GranaryLinear& args, Plan** found) {
  Plan* plan = planOf(keyOf(args, rowBucket(args.rows)));
  if (plan != nullptr && plan->isPicky) plan = planOf(keyOf(args, args.rows));
  if (plan == nullptr || (runtime.isCapturing && plan->isSupported && !plan->hasRun)) {
    return fail(GRANARY_CAPTURE, "a product must run once before it is captured");
  }
  *found = plan;
  if (plan->isSupported && resize(*plan, args.rows)) return GRANARY_OK;
  return fail(GRANARY_UNSUPPORTED, "cuBLASLt has no algorithm for %d x %d x %d", args.rows, args.outColumns,
              args.inColumns);
}

// Enqueues the product; cuBLASLt's own status.
int32_t multiply(const Plan& plan, const GranaryLinear& args) {
  if (args.bias != 0) {
    const void* bias = pointer<void>(args.bias);
    api.matmulDescSetAttribute(plan.desc, kLtDescBiasPointer, &bias, sizeof(bias));
  }
  const float alpha = 1.0f, beta = args.residual != 0 ? 1.0f : 0.0f;
  const void* c = pointer<void>(args.residual != 0 ? args.residual : args.out);
  return api.matmul(handle, plan.desc, &alpha, pointer<void>(args.weight), plan.a, pointer<void>(args.x),
                    plan.b, &beta, c, plan.c, pointer<void>(args.out), plan.d, &plan.algo, runtime.workspace,
                    runtime.workspaceBytes, runtime.stream);
}

}  // namespace

// ---- interface ----------------------------------------------------------------------------------------

void closeCublasLt() {
  if (handle == nullptr) return;
  dropPlans();
  api.destroy(handle);
  handle = nullptr;
  library = nullptr;  // stays mapped: it registered kernels with the driver
}

int32_t cublasLtVersion() {
  return handle != nullptr ? static_cast<int32_t>(api.getVersion()) : 0;
}

bool cublasLtTakes(const GranaryLinear& args) {
  if (handle == nullptr || args.dtype != args.weightDtype) return false;
  return args.dtype == GRANARY_BF16 || args.outDtype == GRANARY_F32;
}

int32_t cublasLtPrepare(const GranaryLinear& args) {
  Plan* plan = nullptr;
  return planFor(args, &plan);
}

int32_t cublasLtLinear(const GranaryLinear& args) {
  Plan* plan = nullptr;
  GRANARY_TRY(planFor(args, &plan));
  int32_t status = multiply(*plan, args);
  // The heuristic vouches for the size it was asked about; some algorithms for float32 refuse fewer rows.
  if (status == kLtNotSupported && !plan->isPicky) {
    plan->isPicky = true;
    GRANARY_TRY(planFor(args, &plan));
    status = multiply(*plan, args);
  }
  if (status == kLtNotSupported) {
    plan->isSupported = false;
    return fail(GRANARY_UNSUPPORTED, "cuBLASLt refuses its own algorithm");
  }
  if (status != 0) return fail(GRANARY_DEVICE, "cublasLtMatmul failed with status %d", status);
  plan->hasRun = true;
  return GRANARY_OK;
}

}  // namespace granary

using namespace granary;

extern "C" int32_t granary_open_cublaslt(const char* name) {
  GRANARY_TRY(enterOutsideCapture("granary_open_cublaslt"));
  GRANARY_REQUIRE(handle == nullptr, "cuBLASLt is open already");
  library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(GRANARY_UNSUPPORTED, "%s", dlerror());
  const bool isComplete = resolveAll();
  const int32_t status = isComplete ? api.create(&handle) : 0;
  if (isComplete && status == 0) return GRANARY_OK;
  dlclose(library);
  library = nullptr;
  handle = nullptr;
  if (!isComplete) return fail(GRANARY_UNSUPPORTED, "%s is not cuBLASLt, or another version's", name);
  return fail(GRANARY_UNSUPPORTED, "%s: cublasLtCreate gave %d", name, status);
}
