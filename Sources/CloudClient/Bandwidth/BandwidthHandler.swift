internal import NIOCore

/// Lets a connection read no sooner than its client's limit allows. The first in its pipeline: it sees what is on the wire.
///
/// What is still to be read waits in the system's buffers, and so tells the server. (What is sent waits before it is handed to a
/// connection, in `PacedBody`: whoever is behind a connection does not stop at once when that is slow.)
final class BandwidthHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = NIOAny
    typealias OutboundOut = NIOAny

    private let limiter: BandwidthLimiter
    /// Without a limit, as the connection was made.
    private let usualReads: any RecvByteBufferAllocator
    private var readsLittle = false
    private var reading: Scheduled<Void>?

    init(limiter: BandwidthLimiter, usualReads: any RecvByteBufferAllocator) {
        self.limiter = limiter
        self.usualReads = usualReads
    }

    func read(context: ChannelHandlerContext) {
        guard reading == nil else { return }
        if readsLittle != limiter.isLimited {
            readsLittle.toggle()
            let reads =
                readsLittle ? FixedSizeRecvByteBufferAllocator(capacity: BandwidthLimiter.smallPiece) : usualReads
            // On the channel's own thread: it counts for this read, unless the channel is closed.
            context.channel.setOption(.recvAllocator, value: reads).whenComplete { _ in }
        }
        let wait = limiter.wait(.down)
        guard wait > .zero else { return context.read() }
        reading = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(wait)) {
            self.reading = nil
            context.read()
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        limiter.note(unwrapInboundIn(data).readableBytes, .down)
        context.fireChannelRead(data)
    }

    func channelInactive(context: ChannelHandlerContext) {
        forget()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { forget() }

    private func forget() {
        reading?.cancel()
        reading = nil
    }
}
