#include "runtime/comm/mpi/requests.h"

#include <utility>
#include <vector>

namespace footplate {
namespace {

/// `code`: of making it.
int start(int code, MPI_Request* request) {
  if (code == MPI_SUCCESS) code = MPI_Start(request);
  if (code != MPI_SUCCESS) *request = MPI_REQUEST_NULL;
  return code;
}

}  // namespace

int begin_send(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  return start(MPI_Send_init(data, count, type, to, tag, comm, request), request);
}

int begin_receive(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                  MPI_Request* request) {
  return start(MPI_Recv_init(data, count, type, from, tag, comm, request), request);
}

int wait_for(std::span<MPI_Request> requests) {
  std::vector<MPI_Status> statuses(requests.size());
  const int all = MPI_Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data());
  int code = MPI_SUCCESS;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const int its = all == MPI_ERR_IN_STATUS ? statuses[i].MPI_ERROR : all;
    if (its == MPI_ERR_PENDING) continue;
    MPI_Request request = std::exchange(requests[i], MPI_REQUEST_NULL);
    if (its == MPI_SUCCESS && request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    if (code == MPI_SUCCESS) code = its;
  }
  return code == MPI_SUCCESS ? all : code;
}

}  // namespace footplate
