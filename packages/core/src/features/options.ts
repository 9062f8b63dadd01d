import type { BasicPolicyOptions } from '../policy/policy.js'
import type { BanOption } from './bans/ban-terms.js'
import type { ChargesOption } from './charges/charge-terms.js'
import type { SharedTurnsOption } from './queues/shared-turns-terms.js'
import type { ConsistencyOption } from './relaxed/relaxed-terms.js'

/** The options of a policy. */
export interface PolicyOptions<Subject>
  extends BasicPolicyOptions<Subject>,
    ConsistencyOption,
    SharedTurnsOption,
    ChargesOption,
    BanOption<Subject> {}
