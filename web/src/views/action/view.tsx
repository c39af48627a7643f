export default function Action(_: { id: string }) {
  return <h1>Action</h1>
}
