-- The functions of each kind of cell, by kernel. They act on the current cell: `open` selects its params; `look` reads
-- its state, brings it to the present and returns whether a cost has room (0 now, -1 never, else later). The others
-- act on that state; `room` returns for how many units there is room. If a decision has several cells, `keep` sets the
-- state aside, and `recall` restores it.
local prepare, open, look, keep, recall, take, refund, renew, heal, report = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}
--- @when debit
-- The op that charges units whatever room there is, and its functions.
local DEBIT, debit = 6, {}
--- @end
--- @when together
local room = {}
--- @end
--- @when exchange
-- `merge` adds a process's own charges, from ARGV; `state` writes the state from which such a process continues.
local merge, state = {}, {}
--- @end
--- @when several
-- Values set aside, by cell. Each kind of cell determines their meaning.
local kept1, kept2, kept3, kept4, kept5 = {}, {}, {}, {}, {}
local kept6, kept7, kept8, kept9, kept10 = {}, {}, {}, {}, {}
--- @end

--- @include "kernels/clock"
--- @include "kernels/ceiling"
--- @when joint
--- @include "shared/joint"
--- @end

--- @include "made/cells"
