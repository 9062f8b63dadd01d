/** The members of a sorted set with their scores, as a plain command replies them: in pairs by RESP3, one after the other by RESP2. */
export function scoresIn(reply: unknown): [member: string, score: number][] {
  const texts = Array.isArray(reply) ? reply.flat().map(String) : []
  return texts.flatMap((member, i): [string, number][] => (i % 2 === 0 ? [[member, Number(texts[i + 1])]] : []))
}
