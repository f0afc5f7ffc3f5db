// Makes plain loops use the vector units of the machine. A marked free function is compiled for three levels of x86-64.
// The program chooses the best supported level when it starts; it never assumes one.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MEGALITH_VECTORISED \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize("O3")))
#else
#define MEGALITH_VECTORISED
#endif
