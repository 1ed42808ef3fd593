// Marks a definition of the C ABI; everything else in the library is hidden.
#pragma once

#define GRANARY_EXPORT extern "C" __attribute__((visibility("default")))
