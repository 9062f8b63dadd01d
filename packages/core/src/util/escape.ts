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
