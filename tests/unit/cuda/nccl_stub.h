#pragma once

/// A libnccl for tests: a shared library that has NCCL's calls, lets the ranks of one process meet by their
/// id, records what is called, and fails or hangs where it is told to. Found by dlopen, as the real one.
extern "C" {
/// Forgets everything; calls that hang go on, and fail.
void stub_reset();
/// `fault` of `call` ("ncclCommInitRankConfig"): "fail" returns a system error, "hang" never returns (until
/// stub_reset), "never" lets ncclCommInitRankConfig return, and its communicator never be ready, "" is none.
void stub_fault(const char* call, const char* fault);
/// From here on ncclCommGetAsyncError tells of a remote error.
void stub_break();
/// The calls so far, separated by blanks, each "name" or "name:detail"; without polls.
const char* stub_calls();
/// Communicators that are not freed.
int stub_live();
/// Polls of a communicator that was freed, and other calls on one.
int stub_misuse();
/// The version that it tells, 22809 at first.
void stub_version(int version);
/// How many threads hang.
int stub_hanging();
}
