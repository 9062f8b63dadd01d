type Data = Readonly<Record<string, unknown>>

/** Whether the decisions of a policy follow from its charges alone: not from responses, waits, bans, permits or capped estimates. */
export function followsFromRequests(data: Data): boolean {
  return (
    data.count === undefined &&
    data.ban === undefined &&
    !/"(delay|queue)"|"concurrency"|-bytes"|"estimate":"cap"/.test(JSON.stringify(data))
  )
}
