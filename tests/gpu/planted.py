# SPDX-License-Identifier: Apache-2.0
"""What self-tests of scripts/gpu-check and scripts/gpu-cost share."""


def fails(tool, what, wanted, got):
    """1 and a line if a planted fault was not found, else 0."""
    if wanted == got:
        return 0
    print(f'{tool} --self-test: {what} must be {wanted}, got {got}')
    return 1
