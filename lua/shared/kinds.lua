-- What a kind of cell can do, by kernel. There is one cell at hand: `open` names its params, `look` finds its state,
-- brings it to the present and returns whether a cost has room (0 now, -1 never, else later); the others act on what it
-- found; `room` is for how many units there is room. Where a decision has several cells, `keep` puts what was found aside,
-- and `recall` brings it back.
local prepare, open, look, keep, recall, take, refund, renew, heal, report = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}
--- @when together
local room = {}
--- @end
--- @when exchange
-- `merge` adds what a process has charged by itself, from ARGV; `state` is what such a process goes on from.
local merge, state = {}, {}
--- @end
--- @when several
-- What is put aside, by cell; each kind of cell says what where.
local kept1, kept2, kept3, kept4, kept5 = {}, {}, {}, {}, {}
local kept6, kept7, kept8, kept9, kept10 = {}, {}, {}, {}, {}
--- @end

--- @include "kernels/clock"
--- @include "kernels/ceiling"
--- @when joint
--- @include "shared/joint"
--- @end

--- @include "made/cells"
