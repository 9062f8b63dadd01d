--- The instant of all decisions of a script, in ms: `clock`, or Redis's own if that is ''.
local now
local slack = 0
if clock ~= '' then
  -- Redis expires keys by its own clock. With another clock, a state must not end early.
  now, slack = clock + 0, 3600000
else
  local time = call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
end
