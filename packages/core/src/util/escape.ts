const STEERING = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/**
 * Escapes, as JSON does, characters that a terminal obeys or hides: control characters, those that change the direction of
 * text, and invisible ones. Line breaks stay. A text that is JSON stays the same JSON.
 */
export function escapeControls(text: string): string {
  // Code units, as JSON has no escape for characters beyond U+FFFF.
  return text.replace(STEERING, (character) =>
    character.replace(/./gs, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  )
}

/** A text as a part of a line, where a line break would begin one that the program did not print. */
export function inLine(text: string): string {
  return escapeControls(text).replaceAll('\n', '\\n')
}

/** In quotes and at most 40 characters, without characters that control a terminal. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)
}
