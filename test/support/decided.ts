import type { Verdict } from '@sluice/core'

/** The verdict, if the store itself decided; throws if the local fallback did. */
export async function decided(call: Verdict | Promise<Verdict>): Promise<Verdict> {
  const verdict = await call
  if (verdict.kind !== 'decided') throw new Error('the store did not decide')
  return verdict
}
