--- Sets the marker of waiters in a cluster, where it is on a slot of its own.
-- KEYS   1 the marker
-- ARGV   1 for how many ms it is there at least
--- @include "shared/mark-waiting"
mark_waiting(KEYS[1], tonumber(ARGV[1]))
