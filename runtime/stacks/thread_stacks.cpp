#include "runtime/stacks/thread_stacks.h"

#include <dirent.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "protocol/mutex.h"
#include "runtime/stacks/symbol_thread.h"

namespace footplate {
namespace {

/// Recorded of a thread. A backward pass has some forty, recursion any number: the outermost are lost then.
constexpr int kMostFrames = 160;
/// Shown of a thread: the innermost two thirds, and the outermost.
constexpr std::size_t kFramesShown = 40;
/// Asked at once; further ones are named only.
constexpr std::size_t kMostThreads = 512;
/// Between looks whether all have answered, which takes microseconds.
constexpr std::chrono::microseconds kLook{200};

constexpr auto kLeftOut = "…";

// --- what the handler touches ---

/// Where a thread writes its frames. It belongs to the question whose ticket it holds: a handler that runs
/// late finds another ticket and leaves it alone, and one that is still writing keeps it from the next
/// question.
struct Slot {
  enum Phase : std::uint64_t { asked = 1, writing = 2, written = 3 };
  static constexpr std::uint64_t in(Phase phase, std::uint64_t ticket) { return ticket * 4 + phase; }

  std::atomic<std::uint64_t> phase{0};  ///< in(phase, ticket); 0: free
  std::uintptr_t interrupted = 0;       ///< where the thread was
  std::array<void*, kMostFrames> frames{};
};

/// Of the process: a handler reaches nothing else. A ticket's remainder by their number is its slot.
std::array<Slot, kMostThreads> g_slots;

/// Set while this thread walks its stack: where to go on if that faults. Code without correct unwind tables
/// (assembly, what a library generates) may lead the walk to any address.
thread_local sigjmp_buf* t_way_out = nullptr;

std::uintptr_t interrupted_at(const void* context) {
  [[maybe_unused]] const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return machine.pc;
#else
  return 0;
#endif
}

/// backtrace() fills them one by one: after a fault they have what came before it.
[[gnu::noinline]] void walk(std::array<void*, kMostFrames>& frames) {
  frames.fill(nullptr);
  sigjmp_buf way_out;
  if (sigsetjmp(way_out, /*savemask=*/0) == 0) {
    t_way_out = &way_out;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ::backtrace(frames.data(), kMostFrames);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_way_out = nullptr;
}

void on_stack_signal(int /*signal*/, siginfo_t* info, void* context) {
  if (info->si_code != SI_QUEUE || info->si_pid != ::getpid()) return;
  const int error = errno;
  const auto ticket = reinterpret_cast<std::uintptr_t>(info->si_value.sival_ptr);
  Slot& slot = g_slots[ticket % kMostThreads];
  std::uint64_t expected = Slot::in(Slot::asked, ticket);
  if (slot.phase.compare_exchange_strong(expected, Slot::in(Slot::writing, ticket))) {
    slot.interrupted = interrupted_at(context);
    walk(slot.frames);
    slot.phase.store(Slot::in(Slot::written, ticket), std::memory_order_release);
  }
  errno = error;
}

// --- faults ---

constexpr std::array kFaults{SIGSEGV, SIGBUS};
/// What was done about them before.
std::array<struct sigaction, kFaults.size()> g_before;

void on_fault(int signal, siginfo_t* info, void* /*context*/) {
  if (t_way_out != nullptr) siglongjmp(*t_way_out, 1);
  // Somebody else's: as without us. The instruction faults once more.
  for (std::size_t i = 0; i < kFaults.size(); ++i)
    if (kFaults[i] == signal) ::sigaction(signal, &g_before[i], nullptr);
  if (info->si_code <= 0) ::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), signal);  // was sent
}

bool somebody_walks() {
  return std::ranges::any_of(g_slots,
                             [](const Slot& slot) { return slot.phase.load() % 4 == Slot::writing; });
}

bool is_ours(int signal) {
  struct sigaction found {};
  return ::sigaction(signal, nullptr, &found) == 0 && found.sa_sigaction == on_fault;
}

/// While threads walk their stacks. Faults aren't rare then: within a matrix product of MKL they are the
/// rule. Where somebody still walks at the end (and waits for a core) the handler stays until the next time.
class FaultGuard {
 public:
  FaultGuard() {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    for (std::size_t i = 0; i < kFaults.size(); ++i)
      if (!is_ours(kFaults[i])) ::sigaction(kFaults[i], &action, &g_before[i]);
  }
  ~FaultGuard() {
    if (somebody_walks()) return;
    for (std::size_t i = 0; i < kFaults.size(); ++i)
      if (is_ours(kFaults[i])) ::sigaction(kFaults[i], &g_before[i], nullptr);
  }
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;
};

// --- /proc ---

std::string task_file(pid_t tid, const char* name) {
  return fmt::format("/proc/self/task/{}/{}", tid, name);
}

std::vector<pid_t> threads_of_process() {
  std::vector<pid_t> tids;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/task"), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr)
    if (const long tid = std::strtol(entry->d_name, nullptr, 10); tid > 0)
      tids.push_back(static_cast<pid_t>(tid));
  std::ranges::sort(tids);
  const auto main_thread = std::ranges::find(tids, ::getpid());
  if (main_thread != tids.end()) std::rotate(tids.begin(), main_thread, main_thread + 1);
  return tids;
}

/// What /proc says of a thread.
struct Task {
  std::string name;
  std::string state;
  bool blocks = false;   ///< the signal
  bool pending = false;  ///< one from before hasn't reached it yet
};

/// Nothing where the thread has ended.
std::optional<Task> read_task(pid_t tid) {
  std::ifstream file(task_file(tid, "status"));
  Task task;
  bool found = false;
  for (std::string line; std::getline(file, line);) {
    const auto value = line.substr(std::min(line.size(), line.find('\t') + 1));
    const auto has_signal = [&value] {
      return (std::strtoull(value.c_str(), nullptr, 16) >> (stack_signal() - 1) & 1) != 0;
    };
    if (line.starts_with("Name:")) task.name = value;
    found = true;
    if (line.starts_with("State:"))  // "S (sleeping)"
      task.state = value.size() > 4 ? value.substr(3, value.size() - 4) : value;
    if (line.starts_with("SigPnd:")) task.pending = has_signal();
    if (line.starts_with("SigBlk:")) task.blocks = has_signal();
  }
  if (tid == ::getpid()) task.name = "training";
  return found ? std::optional(task) : std::nullopt;
}

/// ", in the kernel at futex_wait_queue"; nothing where that isn't told.
std::string where_in_kernel(pid_t tid) {
  std::string where;
  std::getline(std::ifstream(task_file(tid, "wchan")), where);
  return where.empty() || where == "0" ? "" : ", in the kernel at " + where;
}

// --- asking ---

Mutex g_asking;  ///< one question at a time: in tests several ranks are in one process
std::uint64_t g_round GUARDED_BY(g_asking) = 0;

/// A thread, and what became of the question.
struct Question {
  ThreadPlace stack;
  Slot* slot = nullptr;  ///< null: not asked
  std::uint64_t ticket = 0;
  std::vector<std::uintptr_t> addresses;
};

/// A question in the next slot that no handler is still writing to, or none.
void give_slot(Question& question, std::size_t& next, std::uint64_t round) {
  for (; question.slot == nullptr && next < kMostThreads; ++next) {
    Slot& slot = g_slots[next];
    const std::uint64_t phase = slot.phase.load(std::memory_order_acquire);
    if (phase % 4 == Slot::writing) continue;
    question.slot = &slot;
    question.ticket = round * kMostThreads + next;
    slot.phase.store(Slot::in(Slot::asked, question.ticket), std::memory_order_release);
  }
}

/// 0, or the error.
int send_signal(pid_t tid, std::uint64_t ticket) {
  siginfo_t info{};
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_ptr = reinterpret_cast<void*>(ticket);  // NOLINT(performance-no-int-to-ptr)
  return ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), tid, stack_signal(), &info) == 0 ? 0 : errno;
}

/// All threads that haven't ended, each with a slot or a note.
std::vector<Question> make_questions() REQUIRES(g_asking) {
  ++g_round;
  std::size_t next = 0;
  std::vector<Question> questions;
  for (const pid_t tid : threads_of_process()) {
    const auto task = read_task(tid);
    if (!task) continue;
    Question& question = questions.emplace_back();
    question.stack = {task->name, tid, task->state, {}, ""};
    if (task->blocks)
      question.stack.note = "doesn't answer: it blocks the signal" + where_in_kernel(tid);
    else if (task->pending)
      question.stack.note = "doesn't answer: an earlier signal hasn't reached it yet" + where_in_kernel(tid);
    else
      give_slot(question, next, g_round);
    if (question.slot == nullptr && question.stack.note.empty())
      question.stack.note = fmt::format("not asked: there are more than {} threads", kMostThreads);
  }
  return questions;
}

/// One after the other without a pause, so that the stacks are of one moment.
void send_signals(std::vector<Question>& questions) {
  for (Question& question : questions) {
    if (question.slot == nullptr) continue;
    const int error = send_signal(question.stack.tid, question.ticket);
    if (error == 0) continue;
    question.slot->phase = 0;
    question.slot = nullptr;
    if (error == ESRCH) question.stack.tid = 0;  // has ended meanwhile
    question.stack.note = "can't be asked: " + std::generic_category().message(error);
  }
  std::erase_if(questions, [](const Question& question) { return question.stack.tid == 0; });
}

bool is_answered(const Question& question) {
  return question.slot == nullptr ||
         question.slot->phase.load(std::memory_order_acquire) == Slot::in(Slot::written, question.ticket);
}

void await_answers(const std::vector<Question>& questions, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!std::ranges::all_of(questions, is_answered) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(kLook);
}

/// Without the handler's own frames, where the walk came to those it interrupted. All but the innermost are
/// where a call returns to: the byte before is of the call, where what follows it may be of another function.
std::vector<std::uintptr_t> addresses_in(const Slot& slot) {
  const auto end = std::ranges::find(slot.frames, nullptr);
  auto first = std::find_if(slot.frames.begin(), end, [&slot](void* frame) {
    return reinterpret_cast<std::uintptr_t>(frame) == slot.interrupted;
  });
  if (first == end) first = slot.frames.begin();
  std::vector<std::uintptr_t> addresses;
  for (; first != end; ++first)
    addresses.push_back(reinterpret_cast<std::uintptr_t>(*first) - (addresses.empty() ? 0 : 1));
  return addresses;
}

void collect(Question& question) {
  if (question.slot == nullptr) return;
  Slot& slot = *question.slot;
  std::uint64_t expected = Slot::in(Slot::asked, question.ticket);
  if (slot.phase.compare_exchange_strong(expected, 0) || !is_answered(question)) {
    const auto task = read_task(question.stack.tid);  // it may have gone to sleep meanwhile
    if (task) question.stack.state = task->state;
    question.stack.note = "doesn't answer" + where_in_kernel(question.stack.tid);
    return;
  }
  question.addresses = addresses_in(slot);
  slot.phase = 0;
}

void leave_out_middle(std::vector<std::string>& frames, std::size_t most) {
  if (frames.size() <= most) return;
  const auto inner = static_cast<std::ptrdiff_t>(most * 2 / 3), outer = static_cast<std::ptrdiff_t>(most / 3);
  frames.erase(frames.begin() + inner, frames.end() - outer);
  frames.insert(frames.begin() + inner, kLeftOut);
}

/// Of the process. It lasts to the end: it may be stuck then.
SymbolThread& symbol_thread() {
  static SymbolThread& thread = *new SymbolThread;
  return thread;
}

void name_frames(std::vector<Question>& questions) {
  std::vector<std::uintptr_t> all;
  for (const Question& question : questions)
    all.insert(all.end(), question.addresses.begin(), question.addresses.end());
  std::vector<std::string> names = symbol_thread().name(all);
  auto name = names.begin();
  for (Question& question : questions) {
    const auto count = static_cast<std::ptrdiff_t>(question.addresses.size());
    question.stack.frames.assign(std::make_move_iterator(name), std::make_move_iterator(name + count));
    name += count;
    leave_out_middle(question.stack.frames, kFramesShown);
  }
}

std::size_t text_size(const std::vector<ThreadPlace>& threads) {
  std::size_t bytes = 2;
  for (const ThreadPlace& thread : threads)
    bytes += 1 + to_json(thread).dump(-1, ' ', false, Json::error_handler_t::replace).size();
  return bytes;
}

}  // namespace

int stack_signal() {
  return SIGRTMIN + 4;
}

void prepare_stacks() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::array<void*, kMostFrames> frames;
    ::backtrace(frames.data(), kMostFrames);  // loads the library that walks
    struct sigaction action {};
    action.sa_sigaction = on_stack_signal;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    ::sigaction(stack_signal(), &action, nullptr);
    symbol_thread();
  });
}

std::vector<ThreadPlace> take_stacks(std::chrono::milliseconds patience) {
  prepare_stacks();
  const MutexLock lock(g_asking);
  std::vector<Question> questions = make_questions();
  {
    const FaultGuard guard;
    send_signals(questions);
    await_answers(questions, patience);
    for (Question& question : questions) collect(question);  // from here on nobody begins to walk
  }
  name_frames(questions);
  std::vector<ThreadPlace> stacks;
  for (Question& question : questions) stacks.push_back(std::move(question.stack));
  return stacks;
}

void trim_stacks(std::vector<ThreadPlace>& threads, std::size_t bytes) {
  for (std::size_t most = kFramesShown; most > 2 && text_size(threads) > bytes;) {
    most /= 2;
    for (ThreadPlace& thread : threads) leave_out_middle(thread.frames, most);
  }
  const std::size_t before = threads.size();
  while (!threads.empty() && text_size(threads) > bytes)
    threads.erase(threads.end() - 1 - static_cast<std::ptrdiff_t>(threads.size() / 4), threads.end());
  if (threads.size() < before) threads.push_back({kLeftOut, 0, "", {}, "further threads are left out"});
}

}  // namespace footplate
