// The options of policies, with those of all features.
import type { BasicPolicyOptions } from '../policy/policy.js'
import type { BanOption } from './bans/ban-terms.js'
import type { ChargesOption } from './charges/charge-terms.js'
import type { SharedTurnsOption } from './queues/shared-turns-terms.js'
import type { ConsistencyOption } from './relaxed/relaxed-terms.js'

/** Options of a policy that features add. */
export interface AddedPolicyOptions<Subject>
  extends ConsistencyOption,
    SharedTurnsOption,
    ChargesOption,
    BanOption<Subject> {}

/** The options of a policy. */
export interface PolicyOptions<Subject> extends BasicPolicyOptions<Subject>, AddedPolicyOptions<Subject> {}
