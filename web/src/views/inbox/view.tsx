export default function Inbox(_: { id?: string }) {
  return <h1>Inbox</h1>
}
