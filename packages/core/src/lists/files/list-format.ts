/** How a file holds a list. */
export type ListFormat = 'plain' | 'netset' | 'json' | 'crowdsec'
