#pragma once

#include <string>

#include "protocol/json.h"
#include "protocol/result.h"

namespace footplate {

/// All that `store` may hold, as compact JSON. It is in every checkpoint's manifest.
inline constexpr std::size_t kMaxStoreBytes = 64U * 1024;

/// Sets store[name] to `value`; null removes it. Errors (usage): a name that is empty or longer than 128
/// bytes, a store of more than kMaxStoreBytes; `store` is unchanged then.
Result<void> put_in_store(Json& store, const std::string& name, const Json& value);

/// Does what the arguments of a call of run.store say: {"name", "value": JSON as text, "keep"?}. Errors: as
/// put_in_store, a value that isn't JSON or has more than 32 levels, and the name "@keep"; `store` is
/// unchanged then.
Result<void> apply_store(Json& store, const Json& arguments);

/// Names with this at their beginning are footplate's own, and not shown.
inline constexpr char kOwnInStore = '@';

/// What survives ckpt.load (`keep`), for take_kept().
Json kept_in_store(const Json& store);
/// Puts it into the store of a checkpoint, in place of what is there.
void take_kept(Json& store, const Json& kept);

}  // namespace footplate
