// SPDX-License-Identifier: Apache-2.0
// Ranks of MPI.
#pragma once
#include "dist/transport.hpp"

#include <memory>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// True in a process that mpirun, or another launcher of MPI's, has started, and where MPI is initialized.
bool has_mpi();

/// False where mpirun ends all ranks when one is killed.
bool survives_killed_ranks();

/// Ways between the ranks of an `MPI_Comm*`, which is duplicated; null: of all ranks, for which MPI is initialized if it is not, and then finalized at the end
/// of the process. Collective. Errors: not_supported without MPI_THREAD_MULTIPLE.
std::shared_ptr<Transport> mpi_transport(void* communicator);

/// From now on the process ends without MPI_Finalize, which would wait for ranks that are lost.
void never_finalize_mpi() noexcept;
/// From now on it ends so if some ranks do not come to their end within seconds.
void wait_less_for_finalize() noexcept;

}}}}  // namespace clutch::v0::dist::detail
