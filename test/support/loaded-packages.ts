// Workers that many files share load these first. Node has once in a while loaded a second core, by the path of a link, for a
// package that came after hundreds of tests; the cause is unknown.
import '@sluice/core'
import '@sluice/policies'
import '@sluice/fetch'
import '@sluice/simulate'
