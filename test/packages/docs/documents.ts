import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Block, blocksOf, sidecarsOf } from './markdown.js'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** The additions of the tests to the blocks of documents, at the same paths. */
export const BESIDE = fileURLToPath(new URL('beside', import.meta.url))

const packages = readdirSync(join(ROOT, 'packages')).map((name) => `packages/${name}/README.md`)

/** All pages, with their blocks of code. */
export const DOCUMENTS: readonly { readonly name: string; readonly blocks: readonly Block[] }[] = [
  'README.md',
  'ARCHITECTURE.md',
  ...markdownIn('docs'),
  ...packages,
].map((name) => ({ name, blocks: blocksOf(name, readFileSync(join(ROOT, name), 'utf8'), sidecarsBeside(name)) }))

/** The name of a file for a block. */
export function fileOf({ where, language }: Block): string {
  return `${where.replace(/\W+/g, '-')}.${language}`
}

/**
 * Whether a block has packages that declare the same members of a framework's types as ours: each is type-checked separately.
 */
export function isApart({ code }: Block): boolean {
  return code.includes("from '@fastify/rate-limit'")
}

function sidecarsBeside(name: string): ReturnType<typeof sidecarsOf> {
  const file = join(BESIDE, name)
  return existsSync(file) ? sidecarsOf(file, readFileSync(file, 'utf8')) : new Map()
}

function markdownIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder))
    .filter((file) => file.endsWith('.md'))
    .sort()
    .map((file) => `${folder}/${file}`)
}
