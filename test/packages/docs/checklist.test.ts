import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { fencesOf } from './markdown.js'

const fencesIn = (name: string) => fencesOf(readFileSync(new URL(`../../../docs/${name}`, import.meta.url), 'utf8'))

test('the sample in docs/production-checklist.md is a part of the one in docs/doctor.md', () => {
  const samples = fencesIn('production-checklist.md')
  expect(samples.map(({ language }) => language)).toEqual(['sh', 'text'])
  const shown = fencesIn('doctor.md')
  for (const { language, text } of samples) {
    const ofLanguage = shown.filter((fence) => fence.language === language)
    expect(
      ofLanguage.some((fence) => fence.text.includes(text)),
      text,
    ).toBe(true)
  }
})
