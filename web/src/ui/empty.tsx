import type { ReactNode } from 'react'

// Empty says what would be here, and how it gets here. whole says that nothing else is in the view, which then has its
// title.
export function Empty({ title, whole, children }: { title: ReactNode; whole?: boolean; children?: ReactNode }) {
  const Heading = whole ? 'h1' : 'h2'
  return (
    <div className="empty">
      <Heading>{title}</Heading>
      {children}
    </div>
  )
}

// Loading is what stands where something will be.
export function Loading({ what }: { what: string }) {
  return (
    <p className="loading" role="status">
      Loading {what}…
    </p>
  )
}
