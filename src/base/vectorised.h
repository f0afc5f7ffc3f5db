// How plain loops reach the machine's vector units: free functions compiled for three levels of x86-64, the best of
// which is chosen when the program starts. Instruction sets are asked, never assumed.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MEGALITH_VECTORISED \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize("O3")))
#else
#define MEGALITH_VECTORISED
#endif
