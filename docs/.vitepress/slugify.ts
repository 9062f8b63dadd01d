/** As GitHub does, and as links in the Markdown and in warnings expect. */
export function slugify(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
}
