import { writeFileSync } from 'node:fs'
import { test } from 'vitest'
import { Lane } from './lane.js'
import { allMutants } from './mutants.js'

test('x', async () => {
  let t = Date.now()
  const lane = await Lane.open()
  console.log('baseline', Date.now() - t)
  t = Date.now()
  const all = allMutants()
  const out = []
  const every = Number(process.env.EVERY ?? 1)
  for (const [i, m] of all.entries()) {
    if (i % every !== 0) continue
    const o = await lane.tryOn(m)
    out.push(o)
    writeFileSync(
      '/tmp/mut.out',
      out
        .map(
          (o) =>
            `${o.tookMs}\t${o.by ?? 'SURVIVED'}\t${o.mutant.file}:${o.mutant.line}\t${o.mutant.id}\t${o.told.slice(0, 150).replaceAll('\n', ' ')}`,
        )
        .join('\n'),
    )
  }
  console.log('ran', out.length, Date.now() - t, out.filter((o) => !o.by).length)
  await lane.close()
}, 900_000)
