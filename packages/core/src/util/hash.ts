import { createHash, hash } from 'node:crypto'

/**
 * `#` and 132 bits of the SHA-256 of a text, in 23 characters. Of UTF-16, so that texts with lone
 * surrogates, which have no UTF-8, stay apart.
 */
export function hashOf(text: string): string {
  return `#${createHash('sha256').update(text, 'utf16le').digest('base64url').slice(0, 22)}`
}

/** 256 bits of the SHA-256 of a text, in base64url: what is kept of a secret. */
export function sha256Of(text: string): string {
  return hash('sha256', text, 'base64url')
}
