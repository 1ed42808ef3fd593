// Attention instances of head dimensions up to 64.
#include "attention-instances.h"

template struct granary::AttentionInstances<64>;
