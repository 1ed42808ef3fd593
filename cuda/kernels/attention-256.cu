// Attention instances of head dimensions up to 256.
#include "attention-instances.h"

template struct granary::AttentionInstances<256>;
