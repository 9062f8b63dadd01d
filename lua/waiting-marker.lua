--- In the place of the line of a script that looks for the marker of blocks, where requests wait for their turn across processes and
-- none is known to: one command asks for both markers, so that where neither is there nothing is paid for it.
-- KEYS   those of the script, the first the marker of blocks: that of waiters is named after it
-- Returns a list of one 0 where only the marker of waiters is there: then nothing is decided.
if call('EXISTS', KEYS[1], KEYS[1] .. ':waiting') > 0 then
  -- A read, so that no eviction by use takes it.
  if tryCall('GET', KEYS[1]) then return '' end
  return { 0 }
end
