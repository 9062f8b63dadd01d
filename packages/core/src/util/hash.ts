import { createHash, hash } from 'node:crypto'

/**
 * `#` and 132 bits of the SHA-256 of a text, in 23 characters. The input is UTF-16, so that texts with lone surrogates, which
 * have no UTF-8, stay apart.
 */
export function hashOf(text: string): string {
  return `#${createHash('sha256').update(text, 'utf16le').digest('base64url').slice(0, 22)}`
}

/** 256 bits of the SHA-256 of a text, in base64url. They are stored in place of a secret. */
export function sha256Of(text: string): string {
  return hash('sha256', text, 'base64url')
}

/** A hash of a text as a number from 0 up to 1. */
export function shareOf(text: string): number {
  return hash32(text, 0) / 2 ** 32
}

/** 32 bits of a text: FNV-1a over its UTF-16 units, mixed as in MurmurHash3 so that similar texts differ. */
export function hash32(text: string, seed: number): number {
  let mixed = seed ^ 0x811c9dc5
  for (let i = 0; i < text.length; i++) mixed = Math.imul(mixed ^ text.charCodeAt(i), 0x01000193)
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
