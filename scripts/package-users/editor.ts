// Where an editor completes the options of a limiter.
import { rateLimit } from '@sluice/express'

rateLimit({
  /*here*/
})
