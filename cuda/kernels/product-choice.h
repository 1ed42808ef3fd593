// Which kernel multiplies few rows: a table measured for each card, a rule where it says nothing.
#pragma once
#include <cstdint>

#include "../include/granary.h"

namespace granary {

// kNarrow and kWide are our own kernel with blocks of 16 and of 32 weight rows.
enum class ProductKernel : char { kLibrary = 'L', kNarrow = 'N', kWide = 'W' };

// Reads the card's name, and GRANARY_PRODUCTS: L, N or W there takes that kernel wherever it can be taken.
void openProductChoice(const char* cardName);

// `outColumns` counts the weight's rows, half of them gates when `isGated`.
ProductKernel chooseProduct(int32_t rows, int32_t outColumns, int32_t inColumns, bool isGated);

// True when our own kernel takes these operands.
bool skinnyTakes(const GranaryLinear& args);
int32_t skinnyLinear(const GranaryLinear& args, ProductKernel kernel);
// out = activation(gate) * up, from `args` whose weight holds 2 * outColumns rows.
int32_t skinnyGatedLinear(const GranaryLinear& args, int32_t activation, ProductKernel kernel);

}  // namespace granary
