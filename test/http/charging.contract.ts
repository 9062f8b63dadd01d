import { describe } from 'vitest'
import { anonymousTests } from './charging/anonymous.js'
import { starting } from './charging/apps.js'
import { contentByteTests } from './charging/content-bytes.js'
import { maxBodyByteTests } from './charging/max-body-bytes.js'
import { outcomeTests } from './charging/outcome.js'
import { tierTests } from './charging/tiers.js'
import type { BodyAppFactory } from './support/body-apps.js'

/** Changes of charges after the decision, the same in every framework. */
export function chargingContract(name: string, factory: BodyAppFactory): void {
  describe(name, () => {
    const start = starting(factory)
    outcomeTests(start)
    contentByteTests(start)
    maxBodyByteTests(start, name)
    anonymousTests(start)
    tierTests(start)
  })
}
