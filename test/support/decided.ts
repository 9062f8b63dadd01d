import type { Verdict } from '@sluice/core'

/** The verdict, if the store itself decided; throws where something had to stand in for it. */
export async function decided(asked: Verdict | Promise<Verdict>): Promise<Verdict> {
  const verdict = await asked
  if (verdict.kind !== 'decided') throw new Error('the store did not decide')
  return verdict
}
