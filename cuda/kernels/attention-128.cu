// Attention instances of head dimensions up to 128.
#include "attention-instances.h"

template struct granary::AttentionInstances<128>;
