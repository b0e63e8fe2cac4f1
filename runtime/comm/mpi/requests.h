#pragma once

#include <mpi.h>

#include <span>

namespace footplate {

// MPI_Isend(), MPI_Irecv() and MPI_Waitall() for large messages between ranks that may be lost. After an
// error MPI_Waitall() frees a request that isn't persistent, also while MPI is still at it; once that part
// fails, too, Open MPI (5.0) ends the process: "Send error after request freed". These use persistent
// requests, which stay.

/// Errors are MPI's codes; then the request is MPI_REQUEST_NULL.
int begin_send(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request);
int begin_receive(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                  MPI_Request* request);

/// Waits until all are done, or one has failed. Those that are over are MPI_REQUEST_NULL then: those that are
/// done are freed, those that failed are left to MPI, which doesn't write to their memory any more. The
/// others go on, and have to be waited for. MPI's code of the first that failed.
int wait_for(std::span<MPI_Request> requests);

}  // namespace footplate
