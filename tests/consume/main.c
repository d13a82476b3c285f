/* SPDX-License-Identifier: Apache-2.0 */
#include <clutch/clutch.h>

#include <stdio.h>

int main(void) {
  char version[32];
  if (clutch_abi_version() < CLUTCH_C_ABI || clutch_version(version, sizeof version, NULL) != CLUTCH_OK) return 1;
  printf("clutch %s for C\n", version);
  return 0;
}
