/** `1 key`, `2,345 keys`. */
export function counted(number: number, what: string, plural = `${what}s`): string {
  return `${grouped(number)} ${number === 1 ? what : plural}`
}

export function grouped(number: number): string {
  return number.toLocaleString('en-US')
}

/** Bytes for people, in the units of redis.conf: `1.5 MiB`. */
export function bytes(number: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']
  let value = number
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}

/** Milliseconds to three digits: `0.31 ms`, `12.4 ms`, `1,250 ms`. */
export function ms(number: number): string {
  const digits = number < 1 ? 2 : number < 100 ? 1 : 0
  return `${grouped(Number(number.toFixed(digits)))} ms`
}

/** `a, b and c`. */
export function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}

/** A share from 0 to 1: `0.4 %`. Never rounded to nothing or all where it is neither. */
export function percent(share: number): string {
  if (!(share > 0) || share === 1) return `${share === 1 ? 100 : 0} %`
  if (share < 0.0001) return '< 0.01 %'
  if (share > 0.9999 && share < 1) return '> 99.99 %'
  const value = share * 100
  return `${grouped(Number(value.toFixed(value < 1 || value > 99 ? 2 : value < 10 ? 1 : 0)))} %`
}
