import type { ReactNode } from 'react'

// Empty says what would be here, and how it gets here.
export function Empty({ title, children }: { title: ReactNode; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  )
}

// Loading is what stands where something will be.
export function Loading({ what }: { what: string }) {
  return <p className="loading" role="status">Loading {what}…</p>
}
