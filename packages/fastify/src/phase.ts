import { SluiceError } from '@sluice/core'

/** The hooks of Fastify in which a limiter may run, in their order. */
const PHASES = ['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const

export type Phase = (typeof PHASES)[number]

/** @throws SluiceError `INVALID_POLICY` */
export function checkedPhase(phase: unknown): Phase {
  if (PHASES.includes(phase as Phase)) return phase as Phase
  const shown = typeof phase === 'string' ? JSON.stringify(phase.slice(0, 60)) : typeof phase
  throw new SluiceError('INVALID_POLICY', `rateLimit: hook: expected one of ${PHASES.join(', ')}, got ${shown}`)
}

/** Whether hooks of the application have identified the client by then. */
export function isLate(phase: Phase): boolean {
  return phase === 'preValidation' || phase === 'preHandler'
}
