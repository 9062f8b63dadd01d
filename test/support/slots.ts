/** The number of slots of a Redis Cluster. */
export const SLOTS = 16_384

/**
 * The cluster slot of a key by the cluster specification, which hashes its first non-empty `{hash tag}` if it has one.
 */
export function slotOf(key: string): number {
  const open = key.indexOf('{')
  const close = open < 0 ? -1 : key.indexOf('}', open + 1)
  return crc16(Buffer.from(close > open + 1 ? key.slice(open + 1, close) : key)) % SLOTS
}

/** The slot of the keys of an identity, whose value needs no escaping. */
export function slotOfIdentity(value: string, kind = 'key'): number {
  return slotOf(`${kind}=${value}`)
}

/** CRC-16/XMODEM, bit by bit: slow and simple, as it checks fast implementations. */
function crc16(bytes: Buffer): number {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff
  }
  return crc
}
