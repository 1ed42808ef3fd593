// Attention instances of head dimensions up to 192.
#include "attention-instances.h"

template struct granary::AttentionInstances<192>;
