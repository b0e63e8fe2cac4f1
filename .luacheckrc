-- Written by scripts/lua-page. Configs and job scripts see what footplate-lua offers: groups of settings as tables
-- whose fields are assigned, and functions. Unknown fields are caught where they are used, by the schema.
std = "lua54"
max_line_length = 110
globals = {
  "run", "model", "train", "sched", "optim", "data", "eval", "ckpt", "comm", "guard", "log", "debug", "nccl",
  "profile", "task", "store",
}
read_globals = {
  "set", "at", "every", "after", "on", "rules", "jobs", "try", "branches", "undo", "redo", "orders",
  "journal", "status", "settings", "help", "metrics", "ranks",
}
