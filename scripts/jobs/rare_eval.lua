-- Evaluates more rarely where evaluating takes too much of the time.
--
--   footplate run kjv --script scripts/jobs/rare_eval.lua -- [SHARE [MOST]]
--
-- An evaluation may take SHARE (0.1) of the time between two of them; where it takes more, eval.every is
-- doubled, up to MOST (10000). An interval that is a time, as "10m", stays.

local share = tonumber(arg[1] or 0.1)
local most = tonumber(arg[2] or 10000)

on("eval", function(e)
  local step_ms = e["perf/step_ms"]
  if e.failed or e.on or not step_ms or type(eval.every) ~= "number" or eval.every == 0 then return end
  local between_s = eval.every * step_ms / 1000
  if e.seconds <= share * between_s or eval.every * 2 > most then return end
  eval.every = eval.every * 2
  print(("step %d: an evaluation took %.2f s of every %.2f s: eval.every %d"):format(e.step, e.seconds,
    between_s, eval.every))
end)
