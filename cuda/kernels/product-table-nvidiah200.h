// Choices measured on an NVIDIA H200. Written by scripts/tune-products; not edited by hand.
#pragma once
#include "product-table.h"

namespace granary {

constexpr ProductEntry kNVIDIAH200Products[] = {
    {6144, 4096, false, "WNNNLLL"},
    {4096, 4096, false, "NNNNNLL"},
    {24576, 4096, true, "NNWWNLL"},
    {28672, 4096, true, "NWWNLLL"},
    {4096, 12288, false, "WWWWLLL"},
    {4096, 14336, false, "LLLLLLL"},
    {151936, 4096, false, "NNWWLLL"},
    {128256, 4096, false, "LLLLLLL"},
    {6144, 2560, false, "WWWWLLL"},
    {2560, 4096, false, "NNNNNLL"},
    {19456, 2560, true, "NWWWWLL"},
    {2560, 9728, false, "NNNNLLL"},
    {151936, 2560, false, "NNNNLLL"},
    {5120, 2048, false, "NNNWLLL"},
    {4096, 2048, false, "NNNNLLL"},
    {2048, 4096, false, "NNNNLLL"},
    {2048, 2048, false, "WWWWNLL"},
    {12288, 2048, true, "WWNWWLL"},
    {2048, 6144, false, "NNNNLLL"},
    {151936, 2048, false, "WWWWLLL"},
};

}  // namespace granary
