--- Sets the marker of waiters in a cluster, where it is on a slot of its own.
-- KEYS   1 the marker
-- ARGV   1 the minimum ms for which it exists
--- @include "shared/mark-waiting"
mark_waiting(KEYS[1], tonumber(ARGV[1]))
